package sqlite

import (
	"strconv"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// guardedVFS is the name of the file system that guarded connections read through.
const guardedVFS = "tarn-guarded"

// openedFiles is the system's file system, and records the open files of each connection:
// a connection that was stopped by force cannot be closed, and its locks would keep the
// log from being emptied until the garbage collector finds them.
var openedFiles = newFileRegister()

type fileRegister struct {
	vfs.VFSFilename

	mu   sync.Mutex
	last uint64
	open map[string]*connectionFiles
}

// connectionFiles holds the files of one connection.
type connectionFiles struct {
	all   *fileRegister
	id    string
	files []vfs.File
}

const fileParameter = "connection"

func newFileRegister() *fileRegister {
	r := &fileRegister{VFSFilename: vfs.Find("").(vfs.VFSFilename), open: map[string]*connectionFiles{}}
	vfs.Register(guardedVFS, r)
	return r
}

// enter starts to record the files of a connection, leave ends it.
func (r *fileRegister) enter() *connectionFiles {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	s := &connectionFiles{all: r, id: strconv.FormatUint(r.last, 10)}
	r.open[s.id] = s
	return s
}

func (s *connectionFiles) leave() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	delete(s.all.open, s.id)
}

// parameter is the parameter in the database name that assigns files to this connection.
func (s *connectionFiles) parameter() string { return fileParameter + "=" + s.id }

// OpenFilename opens a file and records it.
func (r *fileRegister) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := r.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	id := name.URIParameter(fileParameter)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.open[id]; ok {
		s.files = append(s.files, file)
	}
	return file, flags, nil
}

// close closes the files that SQLite left open. They are read-only.
func (s *connectionFiles) close() {
	for _, file := range s.files {
		_ = file.Close()
	}
}

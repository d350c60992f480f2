package sqlite

import (
	"strconv"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// guardedVFS is the name of the file system that guarded connections read through.
const guardedVFS = "tarn-guarded"

// openedFiles is the system's file system, and remembers which files each connection
// has open: one that was stopped by force cannot be closed, and its locks would keep
// the log from being emptied until the garbage collector finds them.
var openedFiles = newFileRegister()

type fileRegister struct {
	vfs.VFSFilename

	mu   sync.Mutex
	last uint64
	open map[string]*connectionFiles
}

// connectionFiles are those of one connection.
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

// enter begins to remember the files of a connection, leave ends it.
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

// parameter is what the name of the database must have, for files to be known as this
// connection's.
func (s *connectionFiles) parameter() string { return fileParameter + "=" + s.id }

// OpenFilename opens a file and remembers it.
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

// close closes what SQLite left open. The files are only read.
func (s *connectionFiles) close() {
	for _, file := range s.files {
		_ = file.Close()
	}
}

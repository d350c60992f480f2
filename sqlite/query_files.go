package sqlite

import (
	"strconv"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// queryVFS is the name of the file system that statements read through.
const queryVFS = "tarn-query"

// openedFiles is the system's file system, and remembers which files a statement has
// open: a connection that was stopped by force cannot be closed, and its locks would
// keep the log from being emptied until the garbage collector finds them.
var openedFiles = newFileRegister()

type fileRegister struct {
	vfs.VFSFilename

	mu   sync.Mutex
	last uint64
	open map[string]*statementFiles
}

// statementFiles are those of one statement.
type statementFiles struct {
	all   *fileRegister
	id    string
	files []vfs.File
}

const fileParameter = "statement"

func newFileRegister() *fileRegister {
	r := &fileRegister{VFSFilename: vfs.Find("").(vfs.VFSFilename), open: map[string]*statementFiles{}}
	vfs.Register(queryVFS, r)
	return r
}

// enter begins to remember the files of a statement, leave ends it.
func (r *fileRegister) enter() *statementFiles {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	s := &statementFiles{all: r, id: strconv.FormatUint(r.last, 10)}
	r.open[s.id] = s
	return s
}

func (s *statementFiles) leave() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	delete(s.all.open, s.id)
}

// parameter is what the name of the database must have, for files to be known as this
// statement's.
func (s *statementFiles) parameter() string { return fileParameter + "=" + s.id }

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
func (s *statementFiles) close() {
	for _, file := range s.files {
		_ = file.Close()
	}
}

package tarn

// traits is what a reflector has learned of its source.
type traits struct {
	// versioned says that the last whole state had a version.
	versioned bool
	// unversioned says that objects come without versions, so that the version of a list
	// does not tell where a watch stands. client-go's fake clientsets are so.
	unversioned bool
	// bookmarks says that the source sends them, so that silence is not only quiet.
	bookmarks bool
	// pages says that the source answered its cheapest read in pages.
	pages bool
	// watchListFailures counts streams in a row that never came to the end of their
	// initial events.
	watchListFailures int
}

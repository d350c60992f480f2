package tarn

// traits is what a reflector has learned of its source.
type traits struct {
	// versioned says that the last whole state had a version.
	versioned bool
	// unversioned says that objects have no versions, so that a watch does not advance
	// the version of the list. client-go's fake clientsets behave like this.
	unversioned bool
	// bookmarks says that the source sends bookmarks, so that silence is a failure.
	bookmarks bool
	// pages says that the source answered its cheapest read in pages.
	pages bool
	// watchListFailures counts streams in a row without an end of the initial events.
	watchListFailures int
}

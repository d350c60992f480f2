package web

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(browsing{m})
}

// browsing ends the browser of all tests before it is seen what they leave behind.
type browsing struct{ *testing.M }

func (b browsing) Run() int {
	code := b.M.Run()
	if chromium.end != nil {
		chromium.end()
	}
	return code
}

package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// minToken is the least length of a token, so that it cannot be guessed.
const minToken = 16

// CheckToken says what is wrong with a token.
func CheckToken(token string) error {
	switch {
	case token == "":
		return errors.New("the token is empty: openssl rand -hex 16 makes one")
	case len(token) < minToken:
		return fmt.Errorf("the token has %d characters: it needs %d or more, so that it cannot be guessed; openssl rand -hex 16 makes one", len(token), minToken)
	}
	return nil
}

// token is the secret that signs in.
type token struct {
	// file holds the digest of a token that comes from a file, digest that of any
	// other.
	file   *reloaded[[]byte]
	digest []byte
	// made is the token itself if the site made it, for the link that signs in.
	made string
}

// newToken reads or makes the token that the options request; nil for none.
func (o Options) newToken() (*token, error) {
	switch {
	case o.Anonymous && (o.Token != "" || o.TokenFile != ""):
		return nil, errors.New("web: Anonymous lets everybody in, and there is a token: leave one out")
	case o.Anonymous:
		return nil, nil
	case o.Token != "" && o.TokenFile != "":
		return nil, errors.New("web: there are a token and a file with one: leave one out")
	case o.TokenFile != "":
		return o.tokenOfFile()
	case o.Token != "":
		if err := CheckToken(o.Token); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		return &token{digest: digest("token", o.Token)}, nil
	}
	made := randomText()
	return &token{digest: digest("token", made), made: made}, nil
}

func (o Options) tokenOfFile() (*token, error) {
	read := func() ([]byte, error) {
		raw, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("web: the token cannot be read: %w", err)
		}
		text := strings.TrimSpace(string(raw))
		if err := CheckToken(text); err != nil {
			return nil, fmt.Errorf("web: %s: %w", o.TokenFile, err)
		}
		return digest("token", text), nil
	}
	file, err := newReloaded(read, func(err error) {
		o.Logger.Error("the page's token has changed and cannot be used; the one before stays", "error", err)
	}, o.TokenFile)
	return &token{file: file}, err
}

// warnOfToken warns if other users can read the token file.
func (o Options) warnOfToken() {
	if info, err := os.Stat(o.TokenFile); o.TokenFile != "" && err == nil && info.Mode().Perm()&0o077 != 0 {
		o.Logger.Warn("the file with the page's token can be read by other users of this machine: chmod 600", "file", o.TokenFile)
	}
}

// now returns the digest of the token.
func (t *token) now() []byte {
	if t.file != nil {
		return t.file.get()
	}
	return t.digest
}

func (t *token) is(text string) bool {
	return subtle.ConstantTimeCompare(digest("token", text), t.now()) == 1
}

// digest makes two strings comparable in constant time.
func digest(purpose, text string) []byte {
	sum := sha256.Sum256([]byte("tarn web " + purpose + "\x00" + text))
	return sum[:]
}

// randomText cannot be guessed.
func randomText() string {
	var raw [16]byte
	rand.Read(raw[:]) // it ends the process rather than fail
	return hex.EncodeToString(raw[:])
}

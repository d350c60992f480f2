package sqlite

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
)

// keySize is that of AES-256.
const keySize = 32

// seal encrypts what is written. Each text has a random nonce before it; what it
// belongs to is authenticated along with it, so that rows cannot be exchanged.
type seal struct {
	aead cipher.AEAD
	// sums is the key of checksums.
	sums []byte
}

func newSeal(key []byte) (*seal, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("sqlite: the key has %d bytes; AES-256 needs %d", len(key), keySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &seal{aead, hashed(key, []byte("checksums"))}, nil
}

// sum is a checksum of what belongs to an owner.
func (s *seal) sum(owner, plain []byte) uint32 {
	return binary.BigEndian.Uint32(hashed(s.sums, owner, []byte{0}, plain))
}

func hashed(key []byte, texts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, text := range texts {
		_, _ = h.Write(text) // never fails
	}
	return h.Sum(nil)
}

func (s *seal) close(to, plain, owner []byte) []byte {
	at := len(to)
	to = append(to, make([]byte, s.aead.NonceSize())...)
	_, _ = rand.Read(to[at:]) // never fails
	return s.aead.Seal(to, to[at:], plain, owner)
}

func (s *seal) open(to, sealed, owner []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("%w: it is too short", errBadRow)
	}
	plain, err := s.aead.Open(to, sealed[:n], sealed[n:], owner)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRow, err)
	}
	return plain, nil
}

// KeyFromFile reads a key: 32 bytes, as they are or in hex or base64.
func KeyFromFile(name string) ([]byte, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("sqlite: the key cannot be read: %w", err)
	}
	key, err := parseKey(raw)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %s: %w", name, err)
	}
	return key, nil
}

// KeyFromEnvironment reads a key from a variable, in hex or base64.
func KeyFromEnvironment(name string) ([]byte, error) {
	raw, ok := os.LookupEnv(name)
	if !ok {
		return nil, fmt.Errorf("sqlite: the key is to be in $%s, which is not set", name)
	}
	key, err := parseKey([]byte(raw))
	if err != nil {
		return nil, fmt.Errorf("sqlite: $%s: %w", name, err)
	}
	return key, nil
}

func parseKey(raw []byte) ([]byte, error) {
	if len(raw) == keySize {
		return raw, nil
	}
	text := string(bytes.TrimSpace(raw))
	if key, err := hex.DecodeString(text); err == nil && len(key) == keySize {
		return key, nil
	}
	if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) == keySize {
		return key, nil
	}
	return nil, fmt.Errorf("it holds no key: 32 bytes are wanted, as they are or in hex or base64 (openssl rand -hex 32)")
}

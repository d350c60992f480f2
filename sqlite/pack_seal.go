package sqlite

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
)

const (
	// keySize is that of AES-256.
	keySize = 32
	// saltSize is the number of random bytes from which the keys of a file are derived,
	// and sealSaltSize that for a sealed text. With 24 bytes a collision is likely only
	// after some 2^96 texts.
	saltSize, sealSaltSize = 32, 24
)

// fileKeys are the keys of one file. They are derived from the user's key, if there
// is one, and from the file's own salt.
type fileKeys struct {
	salt []byte
	sums *summer
	// seal is nil if the file is not encrypted.
	seal *seal
}

func newFileKeys(key, salt []byte) (*fileKeys, error) {
	if key != nil && len(key) != keySize {
		return nil, fmt.Errorf("sqlite: the key has %d bytes; AES-256 needs %d", len(key), keySize)
	}
	sums, err := hkdf.Key(sha256.New, key, salt, "tarn checksums", keySize)
	if err != nil {
		return nil, err
	}
	keys := &fileKeys{salt: salt}
	if keys.sums, err = newSummer(sums); err != nil || key == nil {
		return keys, err
	}
	base, err := hkdf.Key(sha256.New, key, salt, "tarn objects", keySize)
	keys.seal = &seal{base}
	return keys, err
}

func newSalt() []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// seal encrypts stored texts by AES-256-GCM. The place of a text is authenticated along
// with it, so that rows cannot be exchanged.
//
// Every text has its own key and nonce, derived by HKDF from random bytes that precede
// it. Why not one key with random nonces: GCM allows 2^32 of them, and a collection that
// changes a thousand times a second reaches that after 50 days.
type seal struct{ base []byte }

func (s *seal) aead(salt []byte) (aead cipher.AEAD, nonce []byte, err error) {
	const nonceSize = 12
	derived, err := hkdf.Key(sha256.New, s.base, salt, "", keySize+nonceSize)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(derived[:keySize])
	if err != nil {
		return nil, nil, err
	}
	aead, err = cipher.NewGCM(block)
	return aead, derived[keySize:], err
}

func (s *seal) close(plain, owner []byte) ([]byte, error) {
	salt := make([]byte, sealSaltSize, sealSaltSize+len(plain)+16)
	_, _ = rand.Read(salt) // never fails
	aead, nonce, err := s.aead(salt)
	if err != nil {
		return nil, err
	}
	return aead.Seal(salt, nonce, plain, owner), nil
}

func (s *seal) open(sealed, owner []byte) ([]byte, error) {
	if len(sealed) < sealSaltSize {
		return nil, fmt.Errorf("%w: it is too short", errBadRow)
	}
	aead, nonce, err := s.aead(sealed[:sealSaltSize])
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, sealed[sealSaltSize:], owner)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRow, err)
	}
	return plain, nil
}

// KeyFromFile reads a key: 32 bytes, raw or in hex or base64.
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
		return nil, fmt.Errorf("sqlite: the key is expected in $%s, which is not set", name)
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
	return nil, fmt.Errorf("it holds no key: 32 bytes are needed, raw or in hex or base64 (openssl rand -hex 32)")
}

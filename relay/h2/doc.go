// Package h2 serves HTTP/2 connections whose answers last, as watches do.
//
// In net/http every write of a stream is handed to the goroutine of the connection, which
// starts another one to write it, and back: that is most of what a delivery costs. Here a
// stream puts its frames into the buffer of the connection by itself, and the first one that
// finds nobody writing writes what all of them have put there, in one piece.
//
// Frames are read by golang.org/x/net/http2, and so are headers, with its bounds.
package h2

// Package h2 serves HTTP/2 connections with long answers, such as watches.
//
// In net/http a stream passes each write to the goroutine of the connection, which starts
// another one to write it, and the stream waits for both: that is most of what a delivery
// costs. Here a stream appends its frames to the buffer of the connection. If no other stream
// is writing, it writes the whole buffer, with the frames of all streams, in one call.
//
// Frames are read by golang.org/x/net/http2, and so are headers, with its bounds.
package h2

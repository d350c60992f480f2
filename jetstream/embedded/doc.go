// Package embedded runs a NATS server with JetStream in the process: for tests, and for
// programs that bring their own.
package embedded

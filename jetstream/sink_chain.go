package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// chain publishes messages one after the other without waiting for each. A message has an id,
// names the id of the one before it, and the server takes it only if that is the last message
// of the stream. So what is there is always a beginning of the chain, each message once:
//
//   - after a message that is lost or refused, all later ones are refused;
//   - one that arrives late is refused;
//   - as soon as anything else is written to the stream, as by another feeder, the chain ends.
//
// An answer to one message therefore confirms all before it, and only some are asked for.
//
// Why not atomic batches: a server writes those twice, which takes it more than twice the
// time. Why not expect the sequence of the message before: when something else is written in
// between, the sequence of a later message fits again, and those before it are missing. Why
// not expect the checkpoint's sequence in each message: after one was lost, later ones are
// taken, and a stream with replicas takes one such message at a time.
type chain struct {
	nc      *nats.Conn
	inbox   string
	answers *nats.Subscription
	// id names the chain, and lastID the last message that was sent, which has the sequence
	// last.
	id, lastID string
	last       uint64
	// asked are the messages that will be answered, in order.
	asked []asked
	// silent and bytes are of the messages since the last one in asked, waiting and
	// waitingBytes of those before it that are not confirmed.
	silent, bytes         int
	waiting, waitingBytes int
	out                   outgoing
}

// asked is a message that will be answered, with the number and bytes of those that its
// answer confirms.
type asked struct {
	sequence        uint64
	messages, bytes int
}

// At most chainWindow messages, and about maxBatchBytes, are sent and not confirmed. One in
// askEvery is answered, or one in askBytes.
const (
	chainWindow = maxBatch
	askEvery    = chainWindow / 10
	askBytes    = maxBatchBytes / 10
)

// newChain continues a stream after its last message, which has an id.
func newChain(nc *nats.Conn, id string, last uint64) (*chain, error) {
	inbox := nc.NewRespInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	return &chain{nc: nc, inbox: inbox, answers: answers, id: id, lastID: id, last: last}, nil
}

func (c *chain) close() { _ = c.answers.Unsubscribe() } // fails only without a connection

// send publishes the next message, after it has waited for room in the window.
func (c *chain) send(ctx context.Context, m message, ask bool) error {
	size := len(m.data)
	for len(c.asked) > 0 && (c.waiting+c.silent >= chainWindow || c.waitingBytes+c.bytes+size > maxBatchBytes) {
		if err := c.confirm(ctx); err != nil {
			return err
		}
	}
	c.out.begin(m)
	c.out.set(headerAfter, c.lastID)
	c.last++
	c.lastID = c.id + "." + strconv.FormatUint(c.last, 36)
	c.out.set(headerID, c.lastID)
	c.silent, c.bytes = c.silent+1, c.bytes+size
	if ask || c.silent >= askEvery || c.bytes >= askBytes {
		c.out.Reply = c.inbox
		c.asked = append(c.asked, asked{c.last, c.silent, c.bytes})
		c.waiting, c.waitingBytes = c.waiting+c.silent, c.waitingBytes+c.bytes
		c.silent, c.bytes = 0, 0
	}
	return c.nc.PublishMsg(&c.out.Msg)
}

// confirm waits for the next answer.
func (c *chain) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	answer, err := c.answers.NextMsgWithContext(ctx)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return errNobody
	case err != nil:
		return fmt.Errorf("the server did not confirm the commit: %w", err)
	}
	sequence, err := sequenceOf(answer.Data)
	if err != nil {
		return err
	}
	first := c.asked[0]
	if sequence != first.sequence {
		return fmt.Errorf("the server has written a message as number %d, and not as %d", sequence, first.sequence)
	}
	c.asked = c.asked[1:]
	c.waiting, c.waitingBytes = c.waiting-first.messages, c.waitingBytes-first.bytes
	return nil
}

// end waits until all is confirmed. The last message must have asked for its answer.
func (c *chain) end(ctx context.Context) error {
	for len(c.asked) > 0 {
		if err := c.confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeChain writes a commit that is too large for one atomic batch. The checkpoint before it
// says that the commit is incomplete, and so do those on the way, which renew the lease.
func (s *Sink[T]) writeChain(ctx context.Context, w *writing[T], first part, others <-chan part) error {
	id := nuid.Next()
	if err := s.writeAs(ctx, id, nil, s.after(w, part{}, s.at.Objects)); err != nil {
		return err
	}
	c, err := newChain(s.js.Conn(), id, s.at.sequence)
	if err != nil {
		return err
	}
	defer c.close()
	s.known, s.unsettled = false, true
	at, renewed := s.at.Checkpoint, time.Now()
	for p, more := first, true; more; p, more = <-others {
		for _, m := range p.messages {
			if err := c.send(ctx, m, false); err != nil {
				return err
			}
		}
		next := s.after(w, p, at.Objects)
		p.free()
		if !p.last && time.Since(renewed) < s.bucket.Lease/3 {
			at.Objects = next.Objects
			continue
		}
		m, next, err := s.stamp(next, at.Serial)
		if err != nil {
			return err
		}
		if err := c.send(ctx, m, true); err != nil {
			return err
		}
		at, renewed = next, time.Now()
	}
	if at.Incomplete {
		return nil // it could not be encoded to its end
	}
	if err := c.end(ctx); err != nil {
		return err
	}
	s.settle(at, c.last)
	return nil
}

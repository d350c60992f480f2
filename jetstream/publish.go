package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// An atomic batch has at most maxBatch messages, which is the server's limit, and about
// maxBatchBytes, because the server holds it in memory when it commits it.
const (
	maxBatch      = 1000
	maxBatchBytes = 16 << 20
)

// answerWait is how long the server may take to commit a batch.
const answerWait = 20 * time.Second

// errOther says that the checkpoint is not the one that a batch follows.
var errOther = errors.New("another client has written to the bucket")

// serverError is why the server refused a batch.
type serverError struct{ *jetstream.APIError }

// publish writes messages as one atomic batch, and returns the sequence of the last one. A
// single message needs no batch.
// Nothing is written if it fails with a serverError. After any other error that is not known.
//
// The server answers two messages: the first, so that an error which concerns every message
// is known by its name, and the last. The messages between them need no answer of their
// own: if one is missing, the server refuses the batch.
func publish(ctx context.Context, nc *nats.Conn, messages []message) (uint64, error) {
	if !nc.IsConnected() {
		return 0, fmt.Errorf("there is no connection to NATS (%s): %w", nc.Status(), nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	inbox := nc.NewRespInbox()
	answers, err := nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	id := nuid.Next()
	var out outgoing
	for i, m := range messages {
		out.begin(m)
		if len(messages) > 1 {
			out.set(headerBatch, id)
			out.set(headerBatchSeq, strconv.Itoa(i+1))
		}
		switch {
		case i == len(messages)-1:
			if len(messages) > 1 {
				out.set(headerBatchEnd, "1")
			}
			out.Reply = inbox + ".last"
		case i == 0:
			out.Reply = inbox + ".first"
		}
		if err := nc.PublishMsg(&out.Msg); err != nil {
			return 0, err
		}
		if i%64 == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	var first error
	for {
		answer, err := answers.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return 0, errNobody
		case err != nil:
			return 0, errors.Join(first, fmt.Errorf("the server did not confirm the batch: %w", err))
		}
		sequence, err := sequenceOf(answer.Data)
		if answer.Subject == inbox+".first" {
			first = err
			continue
		}
		if err != nil && first != nil {
			err = first
		}
		return sequence, err
	}
}

// sequenceOf reads the answer to a publish. That to a message within a batch is empty.
func sequenceOf(data []byte) (uint64, error) {
	if len(data) == 0 {
		return 0, nil
	}
	var answer struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return 0, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	if answer.Error == nil {
		return answer.Sequence, nil
	}
	switch answer.Error.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, errCodeWrongLastID:
		return 0, serverError{answer.Error}.as(errOther)
	}
	return 0, serverError{answer.Error}
}

// errNobody is the answer of a server that has no stream for a message.
var errNobody = serverError{&jetstream.APIError{Code: 503, Description: "nobody takes messages of this bucket: it is not there, or has no leader"}}

// errCodeWrongLastID says that the message before is not the one that a message names.
const errCodeWrongLastID = 10070

func (e serverError) as(kind error) error { return fmt.Errorf("%w: %w", kind, e) }

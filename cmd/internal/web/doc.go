// Package web shows a mirror: a page for people, an HTTP API for programs, and
// probes and metrics for operators.
//
//	server, err := web.Listen(m, web.Options{})   // m is a *mirror.Mirror
//	fmt.Println(server.SignInURL())               // http://127.0.0.1:8276/#token=…
//	err = server.Serve(ctx)
//
// [New] returns the same as an http.Handler, for a server of your own.
//
// # The page
//
// The overview shows how each table is doing, the explorer finds and sorts
// objects as one types, an object is shown with its changes as they happen and
// with what owns it and what it owns, and the problems say what to do. The page
// is a few scripts without a framework, all embedded; it loads nothing from
// anywhere else. Press ? for its keys.
//
// # The API
//
// Everything but SQL is read by GET, and answered in JSON. An error has a status that
// fits and the body {"error": "what is wrong and what to do"}. Times are in
// RFC 3339.
//
//	/api/tables                      how every table is doing; with history=1 also how it was
//	/api/tables/{table}              rows of a table
//	  q=…                            what they must match, see below
//	  sort=path, sort=-path          by a field, see package fieldpath; by key if missing
//	  limit=100                      at most so many, up to 1,000
//	  continue=…                     from where the page before ended, by its token
//	  offset=…                       from a place on, with the total; instead of continue
//	  at=2026-11-16T02:13:05Z, at=10m   as of a moment, or so long ago; see below
//	/api/objects/{table}/{key}       an object with its owners and dependents; as=yaml for YAML
//	/api/history/{table}             what is kept of the past of a table: since when, and its gaps
//	/api/history/{table}/{key}       the states of an object, newest first, with what changed, and gaps in their places
//	  limit=100                      at most so many, up to 1,000
//	  continue=…                     from where the page before ended, by its token
//	  state=…                        one state by its number, with its object; as=yaml for YAML
//	/api/problems                    what is and was wrong, and the objects that could not be taken
//	/api/events                      a stream of server-sent events: overview, once a second
//	  table={table}                  also table, when rows of it have changed
//	  object={table}/{key}           also object with its differences, and related
//	/api/sql                         what SQL can be asked about; with table={table} its columns
//	  POST, as application/sql       answers a statement: columns, rows, cut, seconds, and error if it failed after some rows
//	  format=csv, json, table        as that instead
//	  rows=1000, timeout=10s         its limits, up to 100,000 and 20s
//	/api/session                     how the client is signed in
//	  POST, with the token           opens a session, which stands for the token for some hours
//	  DELETE                         ends the caller's session; with all=true every one
//	/metrics                         for Prometheus, see package metrics
//	/healthz                         200 while the mirror runs
//	/readyz                          200 while every table is synced and fresh; else why not
//	/debug/pprof/                    with Options.Profiles only
//
// A table is named as in "pods" or "deployments.apps", a key is "namespace/name"
// or "name". A page that was followed by token may be shorter than its limit,
// even empty, as long as it has a token. A page by offset is read from an order
// of keys that is kept for a quarter of a second, or ten times as long as it took
// to make; the objects are always the newest. It says "behind" if the table has
// changed since.
//
// A query has terms with spaces between them, which must all match:
//
//	web                       a word in the key, or in a label's name=value
//	"two words"               the same with a space
//	app=web tier!=db !old     labels
//	tier in (web, api)        a label
//	status.phase!=Running     a field of metadata, spec or status
//	.reason=Failed            any other field
//	spec.replicas>3           a number
//
// # The past
//
// A mirror that keeps a history on disk can be asked what a table was like, and which
// states an object had. A moment is "as heard at": what the mirror knew then, by its own
// clock. An answer about the past has "since", the oldest moment that can be asked for,
// and "gaps", the ranges it touches within which states may be missing, each with its
// cause. Without a history the answer is 404, and 410 before it begins. The rules for
// Secrets are those of the present.
//
// # Who may see it
//
// [Listen] takes a loopback address by default; any other needs TLS and a token of
// one's own. On loopback a token is made, since a machine may have other users, and
// [Server.SignInURL] is the link that signs in; [Options.Anonymous] does without.
//
// The token is sent as "Authorization: Bearer …", typed into the page, or put behind
// the page's address as #token=…, where no server or log sees it. The page exchanges
// it for a session, which ends by itself, by signing out, with the program, and with
// the token. Certificate and token are read again when their files change.
//
// Requests must name this server in their Host header and must not come from
// another site's page. Nothing but GET and HEAD is answered, and POST of SQL that
// reads. The page may be in no frame and run no script but its own. Nothing that is
// answered may be stored by browsers and proxies. Values of Secrets, and their copies
// in annotations (see package kube, AppliedCopies), are not shown, nor can anything be filtered or
// sorted by them, unless [Options.ShowSecrets] is set.
//
// # A relay
//
// [ListenRelay] serves the page of a relay, or of the relays of a fleet. It has no tables:
// /api/tables and the event overview have "relay" instead, with the origin, the resources and
// the clients. In a fleet "clusters" takes the place of the origin, and resources and clients
// name their cluster. Of the rest there are the session, the probes and /metrics.
//
// # What it takes from whom
//
// A connection that sends no request is closed after seconds, one that has not shown
// the token also when its address holds too many. An answer must be read within half a
// minute, and a stream is ended when its client does not read. Large objects are
// shortened, the answer says where, and as=yaml gives everything.
package web

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tarnproject/tarn/cmd/internal/sqlout"
	"github.com/tarnproject/tarn/cmd/internal/term"
)

// isAddress reports whether the text is the address of a page and not a directory.
func isAddress(from string) bool {
	return strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://")
}

// pageClient sends requests to a page with its token.
//
//   - The token is not sent unencrypted to another machine, where others could read it
//     on the way, nor after a redirect, which leads to somebody else.
//   - No proxy is used unless one is named: $HTTP_PROXY is set for other purposes, and
//     would receive the token.
type pageClient struct {
	address *url.URL
	token   string
	proxy   *url.URL
}

// newPageClient rejects invalid and unsafe options.
func (a *app) newPageClient(from, tokenFile, proxy string) (*pageClient, error) {
	address, err := url.Parse(from)
	switch {
	case err != nil || address.Host == "":
		return nil, usagef("--from %s is not the address of a page, such as http://127.0.0.1:8276", from)
	case address.Fragment != "" || address.User != nil:
		return nil, usagef("--from: other users can see command lines, and there is a secret in this address; put the token into %s, or into a file and name it with --page-token-file", pageToken)
	}
	c := &pageClient{address: address}
	if tokenFile != "" {
		if c.token, err = readToken(tokenFile); err != nil {
			return nil, err
		}
	} else if token, ok := a.getenv(pageToken); ok {
		c.token = strings.TrimSpace(token)
	}
	if c.token != "" && address.Scheme != "https" && !isLoopback(address.Hostname()) {
		return nil, usagef("--from %s is another machine, and the token would be sent unencrypted: take https, or ask without a token", from)
	}
	if proxy != "" {
		if c.proxy, err = url.Parse(proxy); err != nil || c.proxy.Host == "" {
			return nil, usagef("--page-proxy %s is not the address of a proxy, such as http://proxy.example.com:3128", proxy)
		}
		if c.token != "" && address.Scheme != "https" {
			return nil, usagef("--page-proxy: the proxy would see the token: use https")
		}
	}
	return c, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// do sends a request. Call the returned function once its answer was read.
func (c *pageClient) do(request *http.Request) (*http.Response, func(), error) {
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	transport := &http.Transport{}
	if c.proxy != nil {
		transport.Proxy = http.ProxyURL(c.proxy)
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		transport.CloseIdleConnections()
		return nil, nil, err
	}
	return response, func() { response.Body.Close(); transport.CloseIdleConnections() }, nil
}

// sqlOfPage sends the statement to a page, which has the limits and the formats
// too.
func (a *app) sqlOfPage(ctx context.Context, statement string, opts *sqlOptions) error {
	client, err := a.newPageClient(opts.dir, opts.pageTokenFile, opts.pageProxy)
	if err != nil {
		return err
	}
	address := client.address.JoinPath("api", "sql")
	address.RawQuery = url.Values{"format": {opts.format}, "rows": {strconv.Itoa(opts.rows)}, "timeout": {opts.timeout.String()}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), strings.NewReader(statement))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/sql")
	response, done, err := client.do(request)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		cause := err
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			cause = failed.Err
		}
		return fmt.Errorf("the page cannot be reached at %s: %s", opts.dir, cause)
	}
	defer done()
	if response.StatusCode != http.StatusOK {
		return refusedByPage(response)
	}
	defer a.printGaps(sqlout.Gaps{Unwritten: response.Header.Values("Tarn-Unwritten"), Incomplete: response.Header.Values("Tarn-Incomplete")})
	if _, err = io.Copy(a.out, response.Body); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("the answer is not complete: the page broke it off (%w); did it take longer than --timeout?", err)
	}
	if response.Trailer.Get("Tarn-More-Rows") != "" && opts.format != "table" {
		fmt.Fprintf(a.errOut, "There is more than these rows; --max-rows allows more.\n")
	}
	return nil
}

func refusedByPage(response *http.Response) error {
	var said struct{ Error string }
	if to := response.Header.Get("Location"); response.StatusCode/100 == 3 && to != "" {
		return fmt.Errorf("the page answers with %s to %s; if that is meant, name that address with --from", response.Status, term.Clean(to))
	}
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if json.Unmarshal(raw, &said) != nil || said.Error == "" {
		return fmt.Errorf("the page answers with %s; is it one of tarn serve?", response.Status)
	}
	if response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("the page wants a token, or another one: set %s, or name a file with --page-token-file", pageToken)
	}
	return errors.New(said.Error)
}

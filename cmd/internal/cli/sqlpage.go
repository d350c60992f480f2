package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// isAddress tells a page from a directory.
func isAddress(from string) bool {
	return strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://")
}

// sqlOfPage asks a page, which has the limits and the formats too.
func (a *app) sqlOfPage(ctx context.Context, statement string, opts *sqlOptions) error {
	address, err := url.Parse(opts.dir)
	if err != nil || address.Host == "" {
		return usagef("--from %s is no address of a page, such as http://127.0.0.1:8276", opts.dir)
	}
	address = address.JoinPath("api", "sql")
	address.RawQuery = url.Values{"format": {opts.format}, "rows": {strconv.Itoa(opts.rows)}, "timeout": {opts.timeout.String()}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), strings.NewReader(statement))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/sql")
	if token, ok := a.getenv(pageToken); ok {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
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
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusedByPage(response)
	}
	for _, table := range response.Header.Values("Tarn-Unwritten") {
		defer a.tellUnwritten(table)
	}
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
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if json.Unmarshal(raw, &said) != nil || said.Error == "" {
		return fmt.Errorf("the page answers with %s; is it one of tarn serve?", response.Status)
	}
	if response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("the page wants a token: set %s", pageToken)
	}
	return errors.New(said.Error)
}

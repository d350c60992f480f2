package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tarnproject/tarn/cmd/internal/web"
)

// pageToken is the variable that may hold the page's token itself. --token is
// kubectl's flag for the token that the cluster wants.
const pageToken = "TARN_PAGE_TOKEN"

// pageFlags are the flags that say who may see a page.
type pageFlags struct {
	noToken     bool
	tokenFile   string
	sessionLife time.Duration
	accessLog   string
}

// bindOpen is for every command with a page.
func (p *pageFlags) bindOpen(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.noToken, "no-page-token", false, "let everybody on this machine see the page, without a token")
}

func (p *pageFlags) bind(cmd *cobra.Command) {
	p.bindOpen(cmd)
	bindTokenFile(cmd, &p.tokenFile, "file with the token that visitors must show, instead of one that is made; read again when it changes")
	flags := cmd.Flags()
	flags.DurationVar(&p.sessionLife, "session-life", 12*time.Hour, "how long a session of the page lasts")
	flags.StringVar(&p.accessLog, "access-log", "", "file to which a line for each request is added; - is standard error")
}

func bindTokenFile(cmd *cobra.Command, file *string, usage string) {
	cmd.Flags().StringVar(file, "page-token-file", "", usage)
	_ = cmd.MarkFlagFilename("page-token-file")
}

// check rejects invalid flags, and sets the options of the page.
func (p *pageFlags) check(a *app, page *web.Options) error {
	if p.sessionLife <= 0 {
		return usagef("--session-life is a time such as 12h, not %v", p.sessionLife)
	}
	page.SessionLife, page.Anonymous = p.sessionLife, p.noToken
	token, set := a.getenv(pageToken)
	switch {
	case p.noToken && (p.tokenFile != "" || set):
		return usagef("--no-page-token lets everybody in, and there is a token: leave out --page-token-file and %s, or the flag", pageToken)
	case p.tokenFile != "":
		if _, err := readToken(p.tokenFile); err != nil {
			return err
		}
		page.TokenFile = p.tokenFile
	case set:
		page.Token = strings.TrimSpace(token)
		if err := web.CheckToken(page.Token); err != nil {
			return usagef("%s: %v", pageToken, err)
		}
	}
	return nil
}

// readToken reads a token from a file.
func readToken(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("the token cannot be read: %w; name another file with --page-token-file", err)
	}
	token := strings.TrimSpace(string(content))
	if err := web.CheckToken(token); err != nil {
		return "", usagef("%s: %v", file, err)
	}
	return token, nil
}

// openAccessLog opens the access log, nil for none. The returned function closes it.
func (p *pageFlags) openAccessLog(a *app) (*slog.Logger, func() error, error) {
	to, closeIt := io.Writer(&a.logging.sink), func() error { return nil }
	switch p.accessLog {
	case "":
		return nil, closeIt, nil
	case "-":
	default:
		file, err := os.OpenFile(p.accessLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("--access-log: %w; name a file that can be written", err)
		}
		to, closeIt = file, file.Close
	}
	if strings.EqualFold(a.logging.format, "json") {
		return slog.New(slog.NewJSONHandler(to, nil)), closeIt, nil
	}
	return slog.New(slog.NewTextHandler(to, nil)), closeIt, nil
}

// explainPage names the flags behind an error of the page's options.
func explainPage(err error) error {
	var exposed *web.ExposedError
	if !errors.As(err, &exposed) {
		return errors.New(strings.TrimPrefix(err.Error(), "web: "))
	}
	var missing []string
	if exposed.NoTLS {
		missing = append(missing, "--tls-cert-file and --tls-private-key-file")
	}
	if exposed.WeakToken {
		missing = append(missing, "--page-token-file with a token of 16 characters or more")
	}
	return usagef("--listen %s can be reached from other machines: give %s, or listen on 127.0.0.1", exposed.Address, strings.Join(missing, " and "))
}

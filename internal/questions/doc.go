// Package questions has a cluster's worth of objects, and the answers to the ten questions
// of docs/sql.md about them, computed without SQL. Each database that keeps such objects is
// asked the same questions.
package questions

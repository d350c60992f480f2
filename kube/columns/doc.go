// Package columns says which columns a table of Kubernetes objects has, and reads them: the
// metadata that every object has, what kubectl shows for the usual kinds, and what the
// definition of a custom resource prints. SQLite and Postgres have the same columns.
package columns

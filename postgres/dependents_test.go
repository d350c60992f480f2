package postgres

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/columns"
)

// The definition of a resource changes the type of a column, and somebody has made what depends
// on it. That is named, with what to do; afterwards the column has the other type.
func TestTypeOfAColumnThatSomethingDependsOn(t *testing.T) {
	for made, named := range map[string][]string{
		"CREATE VIEW mine AS SELECT key, size FROM things":                                                                                                          {"column size of things", "was bigint", "drop the view mine", "tries again"},
		"CREATE MATERIALIZED VIEW mine AS SELECT size + 1 AS more FROM things_history":                                                                              {"column size of things_history", "drop the materialized view mine"},
		"CREATE VIEW one AS SELECT size FROM things; CREATE VIEW two AS SELECT max(size) FROM things":                                                               {"drop the view one, the view two"},
		"CREATE VIEW one AS SELECT size FROM things; CREATE VIEW two AS SELECT size FROM one":                                                                       {"drop the view one, the view two"},
		"CREATE SCHEMA other_%[1]s; CREATE VIEW other_%[1]s.mine AS SELECT size FROM things":                                                                        {"drop the view other_%[1]s.mine"},
		"CREATE INDEX mine ON things (key) WHERE size > 3":                                                                                                          {"drop the index mine"},
		"CREATE POLICY mine ON things USING (size > 3)":                                                                                                             {"drop the policy mine on table things"},
		"ALTER TABLE things ADD CONSTRAINT mine CHECK (size < 1000)":                                                                                                {"drop the constraint mine on table things"},
		"CREATE VIEW mine AS SELECT key FROM things; CREATE INDEX ON things (size) INCLUDE (key)":                                                                   nil,
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER mine AFTER UPDATE OF size ON things EXECUTE FUNCTION f()": {"drop the trigger mine on table things"},
	} {
		t.Run(made, func(t *testing.T) {
			db := connect(t, database(t), Options{History: true})
			size := func(kind string) *Sink[object] {
				return NewSink(db, "things", "all", wide{more: []columns.Column{{Name: "size", Type: kind, Index: true}}})
			}
			s := size("INTEGER")
			must(t, open(t.Context(), s))
			must(t, s.Commit(t.Context(), whole(batch("1", thing("a", "1", "")))))
			s.Close()
			schema := db.query(t, "SELECT current_schema")[0]
			if strings.Contains(made, "%") {
				made = fmt.Sprintf(made, schema)
			}
			_, err := db.pool.Exec(t.Context(), made)
			must(t, err)
			s = size("TEXT")
			defer s.Close()
			err = open(t.Context(), s)
			for _, text := range named {
				if strings.Contains(text, "%") {
					text = fmt.Sprintf(text, schema)
				}
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("it does not say %q but %v", text, err)
				}
			}
			if named == nil {
				must(t, err)
			}
		})
	}
}

// Meanwhile other resources are fed, and Health says why this one is not. When the view is gone,
// the resource is fed without a restart.
func TestFeedAfterTheTypeOfAColumnChanged(t *testing.T) {
	db := connect(t, database(t), Options{})
	server := serverWith(t, 2)
	grace := func(kind string) kube.Option {
		return In[*corev1.Pod](db, WithColumns(columns.Column{Name: "grace", Type: kind, Path: "spec.terminationGracePeriodSeconds"}))
	}
	stop := feed(t, server, kube.Reflect[*corev1.Pod], grace("INTEGER"))
	db.at(t, server, "pods")
	stop()
	_, err := db.pool.Exec(t.Context(), "CREATE VIEW mine AS SELECT name, grace FROM pods")
	must(t, err)
	seconds := int64(60)
	next := pod("pod-2", corev1.PodPending)
	next.Spec.TerminationGracePeriodSeconds = &seconds
	must(t, server.Put(next))
	pods, err := kube.Reflect[*corev1.Pod](t.Context(), server.Config(), grace("TEXT"))
	must(t, err)
	must(t, server.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}))
	feed(t, server, kube.Reflect[*corev1.ConfigMap], In[*corev1.ConfigMap](db))
	db.at(t, server, "configmaps")
	eventually(t, "Health names the view", func() bool {
		err := pods.Health().Sinks[0].Err
		return err != nil && strings.Contains(err.Error(), "drop the view mine")
	})
	db.wants(t, "SELECT name FROM pods ORDER BY name", "pod-0", "pod-1")
	_, err = db.pool.Exec(t.Context(), "DROP VIEW mine")
	must(t, err)
	db.at(t, server, "pods")
	db.wants(t, "SELECT name, grace FROM pods ORDER BY name", "pod-0|30", "pod-1|30", "pod-2|60")
	_, err = db.pool.Exec(t.Context(), "CREATE VIEW mine AS SELECT name, grace FROM pods")
	must(t, err)
	if err := pods.Health().Sinks[0].Err; err != nil {
		t.Error(err)
	}
}

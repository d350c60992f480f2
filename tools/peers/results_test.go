package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestParse(t *testing.T) {
	got, suites, err := parse("example.org/m", []byte(`go: downloading something
{"Action":"run","Package":"example.org/m/a","Test":"TestA"}
{"Action":"run","Package":"example.org/m/a","Test":"TestA/part"}
{"Action":"pass","Package":"example.org/m/a","Test":"TestA/part"}
{"Action":"fail","Package":"example.org/m/a","Test":"TestA"}
{"Action":"fail","Package":"example.org/m/a"}
{"Action":"skip","Package":"example.org/m/b","Test":"TestB"}
{"Action":"run","Package":"example.org/m/b","Test":"TestCrash"}
{"Action":"fail","Package":"example.org/m/b"}
{"Action":"fail","Package":"example.org/m/c"}
{"Action":"pass","Package":"example.org/m"}
{"Action":"output","Package":"example.org/m/d","Test":"TestSuite","Output":"Running Suite: Cache Suite\n"}
{"Action":"pass","Package":"example.org/m/d","Test":"TestSuite"}
`))
	want := results{
		{"a", "TestA"}: "fail", {"a", "TestA/part"}: "pass",
		{"b", "TestB"}: "skip", {"b", "TestCrash"}: "fail", {"b", ""}: "fail",
		{"c", ""}: "fail", {"d", "TestSuite"}: "pass",
	}
	if len(suites) != 1 || suites[0] != (test{"d", "TestSuite"}) {
		t.Errorf("the suites are %v", suites)
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if tests, failed, skipped := got.count(); tests != 7 || failed != 4 || skipped != 1 {
		t.Errorf("%d tests, %d failed, %d skipped", tests, failed, skipped)
	}
}

func TestTakeSpecs(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "a", specReport)
	if err := os.Mkdir(filepath.Dir(report), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, []byte(`[{"SpecReports":[{"LeafNodeType":"It","LeafNodeText":"reads","State":"passed"}]}]`), 0o666); err != nil {
		t.Fatal(err)
	}
	all := results{{"a", "TestSuite"}: "pass", {"a", "TestOther"}: "pass", {"b", "TestSuite"}: "fail"}
	if err := takeSpecs(dir, []test{{"a", "TestSuite"}, {"b", "TestSuite"}}, all); err != nil {
		t.Fatal(err)
	}
	want := results{{"a", "reads"}: "pass", {"a", "TestOther"}: "pass", {"b", "TestSuite"}: "fail"}
	if !maps.Equal(all, want) {
		t.Errorf("got %v", all)
	}
	if _, err := os.Stat(report); !os.IsNotExist(err) {
		t.Errorf("the report is still there: %v", err)
	}
}

func TestAddSpecs(t *testing.T) {
	all := results{}
	err := addSpecs("pkg/cache", []byte(`[{"SpecReports":[
		{"ContainerHierarchyTexts":["Cache","as a Reader"],"LeafNodeType":"It","LeafNodeText":"reads","State":"passed"},
		{"ContainerHierarchyTexts":["Cache"],"LeafNodeType":"It","LeafNodeText":"twice","State":"failed"},
		{"ContainerHierarchyTexts":["Cache"],"LeafNodeType":"It","LeafNodeText":"twice","State":"passed"},
		{"ContainerHierarchyTexts":["Cache"],"LeafNodeType":"It","LeafNodeText":"later","State":"pending"},
		{"ContainerHierarchyTexts":null,"LeafNodeType":"BeforeSuite","LeafNodeText":"","State":"passed"},
		{"ContainerHierarchyTexts":null,"LeafNodeType":"AfterSuite","LeafNodeText":"","State":"timedout"}]}]`), all)
	want := results{
		{"pkg/cache", "Cache as a Reader reads"}: "pass", {"pkg/cache", "Cache twice"}: "fail",
		{"pkg/cache", "Cache later"}: "skip", {"pkg/cache", "AfterSuite "}: "fail",
	}
	if err != nil || !maps.Equal(all, want) {
		t.Errorf("got %v, %v", all, err)
	}
	if addSpecs("x", []byte("no JSON"), all) == nil {
		t.Error("a report that cannot be read")
	}
}

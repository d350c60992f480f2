package questions

import (
	"os"
	"regexp"
)

// A Question of a page of the documents, with the statement that answers it.
type Question struct{ Text, SQL string }

var question = regexp.MustCompile("(?m)^### ([^\n]+)\n+```sql\n((?s:.*?))```")

// On reads the questions of a page.
func On(page string) ([]Question, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var all []Question
	for _, found := range question.FindAllStringSubmatch(string(text), -1) {
		all = append(all, Question{found[1], found[2]})
	}
	return all, nil
}

package memory_test

import (
	"testing"

	"github.com/tarnproject/tarn"
	"github.com/tarnproject/tarn/memory"
	"github.com/tarnproject/tarn/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) tarn.ReadStore[storetest.Object] {
			return memory.New[storetest.Object]()
		})
	})
	t.Run("with an index", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) tarn.ReadStore[storetest.Object] {
			s := memory.New[storetest.Object]()
			if err := s.AddIndexes(map[string]func(storetest.Object) ([]string, error){
				"name": func(o storetest.Object) ([]string, error) { return []string{o.Name}, nil },
			}); err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
}

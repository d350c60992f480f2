package ondisk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tarnproject/tarn/kube"
	"github.com/tarnproject/tarn/kube/wire"
	"github.com/tarnproject/tarn/sqlite"
)

// wideFields shows whole objects to SQL in four columns, object_metadata, object_spec,
// object_status and object_rest, and one that puts them together, object.
//
// Why in parts: an object is written some ten times for each change of its spec, and in
// real pods the spec is most of the content without the managed fields. An unchanged part
// is neither converted to JSON nor written; its protobuf bytes show whether it changed.
type wideFields struct {
	apiVersion, kind string
	// fields holds the object's fields without metadata; nil for unstructured objects.
	fields []wideField
	// protobuf says that raw objects are protobuf. unsummed says that sums are not needed,
	// because the values are used at once.
	protobuf, unsummed bool
}

// wideField is a top-level field of an object.
type wideField struct {
	// name is the field's name in JSON, number its number in protobuf, index its index in the
	// struct.
	name   string
	number uint64
	index  int
}

func wideFieldsOf(of kube.Origin, protobuf bool) wideFields {
	p := wideFields{protobuf: protobuf}
	p.apiVersion, p.kind = of.Kind.ToAPIVersionAndKind()
	if of.Object == unstructuredType {
		return p
	}
	t := of.Object.Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" || name == "metadata" {
			continue
		}
		number := uint64(0)
		if fields := strings.Split(f.Tag.Get("protobuf"), ","); len(fields) > 1 {
			number, _ = strconv.ParseUint(fields[1], 10, 32)
		}
		p.fields = append(p.fields, wideField{name, number, i})
	}
	return p
}

// columns returns the last columns of the table. The whole object is as kubectl get
// -o json shows it: without managed fields.
func (p wideFields) columns() []sqlite.Column {
	head, _ := json.Marshal(map[string]string{"apiVersion": p.apiVersion, "kind": p.kind})
	start := strings.ReplaceAll(strings.TrimSuffix(string(head), "}"), "'", "''")
	if p.kind == "" {
		// Unstructured objects have theirs in the rest.
		start = `{"metadata":`
	} else {
		start += `,"metadata":`
	}
	expr := "'" + start + `' || {object_metadata} || coalesce(',"spec":' || {object_spec}, '') || coalesce(',"status":' || {object_status}, '') || coalesce(',' || substr({object_rest}, 2), '}')`
	return []sqlite.Column{
		{Name: "object_metadata", Type: "JSON", Wide: true, Fill: "resource_version"}, {Name: "object_spec", Type: "JSON", Wide: true, Shared: true},
		{Name: "object_status", Type: "JSON", Wide: true}, {Name: "object_rest", Type: "JSON", Wide: true},
		{Name: "object", Type: "JSON", Expr: expr},
	}
}

// add adds the parts of an object. Make may use the object, but not raw, whose memory is
// reused before.
func (p wideFields) add(row *sqlite.Row, o metav1.Object, raw []byte) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return p.addUnstructured(row, u, raw)
	}
	sums := map[uint64][16]byte{}
	if p.protobuf && !p.unsummed {
		sums = sumsOf(raw)
	}
	v := reflect.ValueOf(o).Elem()
	spec, status := sqlite.WideValue{}, sqlite.WideValue{}
	var rest []wideField
	for _, f := range p.fields {
		switch {
		case f.name == "spec":
			spec = p.partOf(v, f, sums)
			spec.Words = specWords(o)
		case f.name == "status":
			status = p.partOf(v, f, sums)
		default:
			rest = append(rest, f)
		}
	}
	row.Values = append(row.Values, p.metadata(o, sums), spec, status, restOf(v, rest))
	return nil
}

// partOf is a field that is only converted if its bytes have changed.
func (p wideFields) partOf(v reflect.Value, f wideField, sums map[uint64][16]byte) sqlite.WideValue {
	encode := func() (sqlite.JSON, error) { return jsonOf(v.Field(f.index).Addr().Interface()) }
	if !p.protobuf || f.number == 0 {
		return madeNow(encode)
	}
	return sqlite.WideValue{Sum: sums[f.number], Make: encode}
}

// madeNow is a part that is identified by its JSON.
func madeNow(encode func() (sqlite.JSON, error)) sqlite.WideValue {
	raw, err := encode()
	hash := sha256.Sum256(raw)
	return sqlite.WideValue{Sum: [16]byte(hash[:]), Make: func() (sqlite.JSON, error) { return raw, err }}
}

// restOf returns an object of the non-empty fields that are neither spec nor status; nil
// if there are none.
func restOf(v reflect.Value, fields []wideField) sqlite.WideValue {
	all := map[string]any{}
	for _, f := range fields {
		if field := v.Field(f.index); !field.IsZero() {
			all[f.name] = field.Interface()
		}
	}
	return objectOf(all)
}

func objectOf(all map[string]any) sqlite.WideValue {
	if len(all) == 0 {
		return sqlite.WideValue{}
	}
	return madeNow(func() (sqlite.JSON, error) { return json.Marshal(all) })
}

// metadata is an object's metadata without its managed fields. The version, which changes
// with every write, is a hole that its own column fills.
func (p wideFields) metadata(o metav1.Object, sums map[uint64][16]byte) sqlite.WideValue {
	version := o.GetResourceVersion()
	encode := func() (sqlite.JSON, error) {
		raw, err := metadataJSON(o)
		return withoutVersion(raw, version), err
	}
	if !p.protobuf || !plainVersion(version) {
		return madeNow(encode)
	}
	return sqlite.WideValue{Sum: sums[metadataField], Make: encode}
}

// withoutVersion replaces the version in metadata by a hole. Other places with the same
// text become holes too, and are filled with the same text.
func withoutVersion(metadata sqlite.JSON, version string) sqlite.JSON {
	if !plainVersion(version) {
		return metadata
	}
	const name = `"resourceVersion":"`
	return bytes.ReplaceAll(metadata, []byte(name+version+`"`), []byte(name+sqlite.Hole+`"`))
}

// plainVersion reports whether a version needs no escapes in JSON.
func plainVersion(version string) bool {
	return version != "" && !strings.ContainsFunc(version, func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '-' || r == '.')
	})
}

// metadataJSON is an object's metadata without managed fields.
func metadataJSON(o metav1.Object) (sqlite.JSON, error) {
	held, ok := o.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, fmt.Errorf("a %T does not give its metadata", o)
	}
	m, ok := held.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return nil, fmt.Errorf("a %T has other metadata", o)
	}
	shown := *m
	shown.ManagedFields = nil
	return jsonOf(&shown)
}

// jsonOf is what json.Marshal returns.
func jsonOf(part any) (sqlite.JSON, error) { return wire.AppendJSON(make([]byte, 0, 2<<10), part) }

// addUnstructured cuts the parts out of the object's JSON, which is faster than to encode
// them again.
func (p wideFields) addUnstructured(row *sqlite.Row, u *unstructured.Unstructured, raw []byte) error {
	pieces := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &pieces); err != nil {
		return fmt.Errorf("its JSON cannot be split into parts: %w", err)
	}
	if metadata, _ := u.Object["metadata"].(map[string]any); metadata["managedFields"] != nil {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		shown, err := json.Marshal(metadata)
		if err != nil {
			return err
		}
		pieces["metadata"] = shown
	}
	if pieces["metadata"] == nil {
		pieces["metadata"] = json.RawMessage("{}")
	}
	pieces["metadata"] = json.RawMessage(withoutVersion(sqlite.JSON(pieces["metadata"]), u.GetResourceVersion()))
	for _, name := range []string{"metadata", "spec", "status"} {
		part := sqlite.WideValue{}
		if piece, ok := pieces[name]; ok {
			part = madeNow(func() (sqlite.JSON, error) { return sqlite.JSON(piece), nil })
		}
		if name == "spec" {
			part.Words = specWords(u)
		}
		row.Values = append(row.Values, part)
		delete(pieces, name)
	}
	rest := make(map[string]any, len(pieces))
	for name, piece := range pieces {
		if p.kind == "" || name != "apiVersion" && name != "kind" {
			rest[name] = piece
		}
	}
	row.Values = append(row.Values, objectOf(rest))
	return nil
}

// The field numbers of metadata in all objects, and of the fields of metadata that change
// with every write.
const (
	metadataField      = 1
	versionField       = 6
	managedFieldsField = 17
)

// sumsOf hashes the top-level fields of a protobuf message; of the metadata, only the
// fields that do not change with every write.
func sumsOf(raw []byte) map[uint64][16]byte {
	sums := make(map[uint64][16]byte, 4)
	for len(raw) > 0 {
		number, value, rest, ok := cutField(raw)
		if !ok {
			return sums // cannot happen: the codec wrote it
		}
		if number == metadataField {
			sums[number] = sumOfMetadata(value)
		} else {
			hash := sha256.Sum256(value)
			sums[number] = [16]byte(hash[:])
		}
		raw = rest
	}
	return sums
}

func sumOfMetadata(raw []byte) [16]byte {
	hash := sha256.New()
	for len(raw) > 0 {
		number, _, rest, ok := cutField(raw)
		if !ok {
			rest = nil
		}
		if !ok || number != versionField && number != managedFieldsField {
			_, _ = hash.Write(raw[:len(raw)-len(rest)]) // cannot fail
		}
		raw = rest
	}
	return [16]byte(hash.Sum(nil))
}

// cutField takes the first field off a protobuf message.
func cutField(raw []byte) (number uint64, value, rest []byte, ok bool) {
	tag, from := binary.Uvarint(raw)
	if from <= 0 {
		return 0, nil, nil, false
	}
	size := uint64(0)
	switch tag & 7 {
	case 0: // a number
		_, n := binary.Uvarint(raw[from:])
		size = uint64(max(n, 0))
	case 1:
		size = 8
	case 2: // a text or a message, after its length
		length, n := binary.Uvarint(raw[from:])
		if n <= 0 {
			return 0, nil, nil, false
		}
		from, size = from+n, length
	case 5:
		size = 4
	default:
		return 0, nil, nil, false
	}
	if size > uint64(len(raw)-from) {
		return 0, nil, nil, false
	}
	return tag >> 3, raw[from : from+int(size)], raw[from+int(size):], true
}

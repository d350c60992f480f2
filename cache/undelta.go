package cache

// UndeltaStore pushes its whole content after every change, for users that need the
// content and not the changes. Each push costs the size of the content.
type UndeltaStore struct {
	Store
	PushFunc func([]any)
}

var _ Store = &UndeltaStore{}

// NewUndeltaStore gives an empty store that calls pushFunc, from the goroutine
// that changes it.
func NewUndeltaStore(pushFunc func([]any), keyFunc KeyFunc) *UndeltaStore {
	return &UndeltaStore{Store: NewStore(keyFunc), PushFunc: pushFunc}
}

// Add stores an object and pushes.
func (u *UndeltaStore) Add(obj any) error { return u.pushAfter(u.Store.Add(obj)) }

// Update stores an object and pushes.
func (u *UndeltaStore) Update(obj any) error { return u.pushAfter(u.Store.Update(obj)) }

// Delete removes an object and pushes.
func (u *UndeltaStore) Delete(obj any) error { return u.pushAfter(u.Store.Delete(obj)) }

// Replace exchanges the content and pushes.
func (u *UndeltaStore) Replace(list []any, resourceVersion string) error {
	return u.pushAfter(u.Store.Replace(list, resourceVersion))
}

// pushAfter does not push after a failed change.
func (u *UndeltaStore) pushAfter(err error) error {
	if err == nil {
		u.PushFunc(u.Store.List())
	}
	return err
}

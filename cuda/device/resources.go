package device

import (
	"errors"
	"fmt"
	"sync"
)

// errClosed is the error of a device that has been closed.
var errClosed = errors.New("cuda: the device is closed")

// Resources are what a Device has created and must end when it is closed: memory, modules,
// streams and events. The zero value has none. Its methods may be called from any
// goroutine.
type Resources struct {
	mu     sync.Mutex
	ends   map[any]func() error
	closed bool
}

// Create calls create and stores end under v, which it returns. After Close it creates nothing and
// returns an error.
func Create[T any](r *Resources, v T, create, end func() error) (T, error) {
	err := r.Add(func() (any, error) { return v, create() }, end)
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// Add calls create, which returns the key under which Add stores end. After Close it creates nothing
// and returns an error.
func (r *Resources) Add(create func() (key any, err error), end func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	key, err := create()
	if err != nil {
		return err
	}
	if r.ends == nil {
		r.ends = map[any]func() error{}
	}
	r.ends[key] = end
	return nil
}

// End ends the resource of a key. An unknown key is an error.
func (r *Resources) End(key any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.ends[key]
	if end == nil {
		return fmt.Errorf("cuda: the device has no resource %v", key)
	}
	delete(r.ends, key)
	return end()
}

// Len returns the number of resources.
func (r *Resources) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ends)
}

// Close calls synchronize, ends every resource and calls release. It returns the first
// error. A second Close does nothing.
func (r *Resources) Close(synchronize, release func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	err := synchronize()
	for _, end := range r.ends {
		if ended := end(); err == nil {
			err = ended
		}
	}
	clear(r.ends)
	if released := release(); err == nil {
		err = released
	}
	return err
}

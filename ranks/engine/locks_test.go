package engine

import "testing"

// Many tasks may read at once and only one may write; a waiting writer holds back later
// readers in the queue, in that search of the queue only.
func TestLock(t *testing.T) {
	p := &gate{}
	l := &p.rows
	expect := func(when string, mayRead, mayWrite bool) {
		t.Helper()
		if l.isFree(read) != mayRead || l.isFree(write) != mayWrite || !l.isFree(none) {
			t.Errorf("%s: free to read is %t, to write %t", when, l.isFree(read), l.isFree(write))
		}
	}
	expect("at first", true, true)
	l.acquire(read)
	l.acquire(read)
	expect("two readers", true, false)
	p.claim(access{rows: read})
	expect("a reader waits", true, false)
	p.claim(access{rows: write})
	expect("a writer waits", false, false)
	p.unclaim()
	expect("the next search", true, false)
	l.release(read)
	l.release(read)
	p.claim(access{rows: write})
	expect("a writer that need not wait claims nothing", true, true)
	l.acquire(write)
	expect("a writer", false, false)
	l.release(write)
	expect("at last", true, true)
}

package lambda

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
)

var fingerprint = strings.Repeat("0a", 32)

// A descriptor without an address, a complete fingerprint, a token or memory for a result is
// rejected.
func TestPull(t *testing.T) {
	for name, change := range map[string]func(*Pull){
		"":              func(*Pull) {},
		"missing port":  func(p *Pull) { p.Address = "example.org" },
		"SHA-256":       func(p *Pull) { p.Fingerprint = p.Fingerprint[2:] },
		"not a SHA-256": func(p *Pull) { p.Fingerprint = "x" + p.Fingerprint[1:] },
		"token of 0":    func(p *Pull) { p.Token = "" },
		"most -1":       func(p *Pull) { p.MostResult = -1 },
	} {
		p := Pull{"example.org:443", fingerprint, "T", 1}
		change(&p)
		if err := p.Check(); (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Any accepted request is complete, and equal after another encoding.
func FuzzRequest(f *testing.F) {
	text, err := json.Marshal(Request{Network: json.RawMessage(`{}`), Pull: Pull{"127.0.0.1:1", fingerprint, "T", 1 << 40}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"Pull":{"Address":"[::1]:7"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Request
		if json.Unmarshal(text, &r) != nil || r.Pull.Check() != nil {
			return
		}
		if _, _, err := net.SplitHostPort(r.Pull.Address); err != nil || len(r.Pull.Fingerprint) != 64 ||
			r.Pull.Token == "" || r.Pull.MostResult < 1 {
			t.Errorf("%+v passes", r.Pull)
		}
		var again Request
		if sent, err := json.Marshal(r); err != nil || json.Unmarshal(sent, &again) != nil || again.Pull != r.Pull {
			t.Errorf("%+v becomes %+v: %v", r.Pull, again.Pull, err)
		}
	})
}

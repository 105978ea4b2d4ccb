package report

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is a headless Chromium, told what to do by the DevTools protocol over a pipe:
// JSON objects that end with a zero byte.
type browser struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	id      int
	noise   []string // errors of the console, and what was loaded from elsewhere
	loaded  bool
}

// message is an answer or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// browse starts the browser. It skips the test if there is none.
func browse(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no chromium; apt-get install chromium")
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--remote-debugging-pipe", "--user-data-dir="+home)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{in, out}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	in.Close()
	out.Close()
	t.Cleanup(func() { // the pipe's end ends the browser; the kill, one that does not hear
		to.Close()
		time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		from.Close()
	})
	if err := from.SetReadDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, to: to, from: bufio.NewReader(from)}
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call does what a method says, and keeps what else is heard meanwhile.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.id++
	request := map[string]any{"id": b.id, "method": method, "params": params}
	if params == nil {
		request["params"] = struct{}{}
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.hear()
		if m.ID != b.id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// hear returns the next message; events are noted.
func (b *browser) hear() message {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("the browser is silent: %v", err)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Page.loadEventFired":
		b.loaded = true
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.noise = append(b.noise, string(m.Params))
	case "Network.requestWillBeSent":
		var r struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &r); !strings.HasPrefix(r.Request.URL, "file://") {
			b.noise = append(b.noise, "loads "+r.Request.URL)
		}
	}
	return m
}

// open shows a file in a window of some width.
func (b *browser) open(path string, width int, dark bool) {
	b.t.Helper()
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
	b.loaded = false
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for !b.loaded {
		b.hear()
	}
}

// eval stores the value of a JavaScript expression.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, value); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// picture saves the whole page where PAGE_PICTURES says, to be looked at.
func (b *browser) picture(name string) {
	dir := os.Getenv("PAGE_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// boxes is an expression for the boxes of a page's charts and tables, in pixels.
const boxes = `Array.from(document.querySelectorAll("svg.chart, svg.timeline, table")).map(e => {
	const r = e.getBoundingClientRect(); return {kind: e.getAttribute("class") || "table", width: r.width, height: r.height, right: r.right}})`

// A page opens from disk without a word on the console and without a request; its
// charts are seen, at the width of a desk and of a phone, on which nothing but tables
// and timelines is wider than the screen; its tables sort, and its legend hides.
func TestPageInABrowser(t *testing.T) {
	b := browse(t)
	file := pageOf(t)
	for _, width := range []int{1200, 390} {
		for _, dark := range []bool{false, true} {
			b.open(file, width, dark)
			b.checkBoxes(width)
			b.picture(fmt.Sprintf("%d-%t", width, dark))
		}
	}
	b.checkSorting()
	b.checkLegend()
	if len(b.noise) > 0 {
		t.Errorf("the browser says:\n%s", strings.Join(b.noise, "\n"))
	}
}

func (b *browser) checkBoxes(width int) {
	b.t.Helper()
	var list []struct {
		Kind                 string
		Width, Height, Right float64
	}
	b.eval(boxes, &list)
	count := map[string]int{}
	for _, box := range list {
		count[box.Kind]++
		if box.Kind == "chart" && (box.Width < 300 || box.Height < 60 || box.Right > float64(width)) {
			b.t.Errorf("at %d pixels: %+v", width, box)
		}
		if box.Kind == "timeline" && (box.Width < 800 || box.Height < 80) {
			b.t.Errorf("at %d pixels: %+v", width, box)
		}
	}
	if count["chart"] < 8 || count["timeline"] != 1 || count["table"] < 2 {
		b.t.Errorf("at %d pixels: %v", width, count)
	}
	var over float64
	if b.eval("document.documentElement.scrollWidth - innerWidth", &over); over > 0 {
		b.t.Errorf("at %d pixels the page is %g wider", width, over)
	}
	var drawn float64 // of the first line, in pixels
	if b.eval(`document.querySelector("path.line[d]").getBoundingClientRect().width`, &drawn); drawn < 10 {
		b.t.Errorf("at %d pixels a line is %g wide", width, drawn)
	}
}

// checkSorting clicks the head of a column of numbers twice.
func (b *browser) checkSorting() {
	b.t.Helper()
	const click = `(() => { const t = document.querySelector("table"), h = Array.from(t.querySelectorAll("th button")).find(b => b.textContent === "test acc");
		h.click(); return Array.from(t.tBodies[0].rows).map(r => r.cells[h.parentElement.cellIndex].textContent) })()`
	for _, want := range []string{"0.6000 0.6400 0.7000 0.8000 -", "0.8000 0.7000 0.6400 0.6000 -"} {
		var got []string
		if b.eval(click, &got); strings.Join(got, " ") != want {
			b.t.Errorf("sorted: %q, want %q", got, want)
		}
	}
}

// checkLegend hides a group and shows it again.
func (b *browser) checkLegend() {
	b.t.Helper()
	const click = `(() => { document.querySelector("button.key").click();
		return Array.from(document.querySelectorAll("svg .g0")).filter(e => e.getBoundingClientRect().width > 0).length })()`
	var hidden, shown int
	b.eval(click, &hidden)
	if b.eval(click, &shown); hidden != 0 || shown < 5 {
		b.t.Errorf("%d of a hidden group are seen, %d of one that is shown", hidden, shown)
	}
}

// pageOf makes a page of a grid of runs, one of them unfinished, one with a timeline,
// and one with a name that is a script.
func pageOf(t *testing.T) string {
	t.Helper()
	dir := grid(t)
	lay(t, filepath.Join(dir, "late <script>alert(1)</script>"), `codec = "</title><script>alert(2)</script>"`+"\nseed = 3", 0)
	timeline := `{"otherData":{"program":"siafu 0"},"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0","role":"graph","host":"a"}},
{"ph":"X","name":"GA","pid":0,"tid":0,"ts":1,"dur":5,"args":{"epoch":1}},
{"ph":"X","name":"</rect><script>alert(3)</script>","pid":0,"tid":1,"ts":7,"dur":5,"args":{"epoch":2}}]}`
	if err := os.WriteFile(filepath.Join(dir, "sweep", "none-1", "trace.json"), []byte(timeline), 0o666); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "page.html")
	if err := (Options{Runs: []string{dir}, HTML: file}).Run(io.Discard); err != nil {
		t.Fatal(err)
	}
	return file
}

// Names of runs, settings and tasks are shown and not run.
func TestPageEscapes(t *testing.T) {
	text, err := os.ReadFile(pageOf(t))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("<script")); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for _, want := range []string{"&lt;script&gt;alert(1)", "&lt;script&gt;alert(2)", "&lt;script&gt;alert(3)"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %q", want)
		}
	}
}

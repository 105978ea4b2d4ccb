package importers

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
)

const debRelationalFixture = `Package: zsh
Version: 5.9-4
Section: shells
Maintainer: Shells <Shells@Debian.org>
Pre-Depends: libc6 (>= 2.34)
Recommends: vim | editor
Breaks: libc6 (<< 2), gone
Description: shell

Package: libc6
Version: 2.36-9
Section: libs
Source: glibc (2.36-9)
Maintainer: GNU Libc <libc@debian.org>
Provides: zsh
Description: library

Package: vim
Version: 1:9.0
Provides: editor, vi (= 9)
Conflicts: vi
Replaces: zsh
Depends: zsh, libc6
Maintainer: nobody

Package: libc-bin
Version: 2.36-9
Source: glibc
Section: libs
Enhances: vim
Suggests: editor
Maintainer: C library <LIBC@debian.org>
`

// TestDebianRelations: fields are relations to packages and to virtual packages; relations to unknown packages are counted.
func TestDebianRelations(t *testing.T) {
	src := filepath.Join(files(t, map[string][]byte{"avail": []byte(debRelationalFixture)}), "avail")
	d, log := written(t, "debian", Options{Src: src, Relations: true, Seed: 1})
	if !strings.Contains(log, "packages=4 other_versions=0 to_unknown=1\n") {
		t.Errorf("log:\n%s", log)
	}
	var kinds []string
	for _, k := range d.Meta.Relations.Kinds {
		kinds = append(kinds, k.Name)
	}
	if !slices.Equal(kinds, []string{"package", "virtual", "source", "maintainer"}) ||
		!slices.Equal(d.Meta.ClassNames, []string{"libs", "shells"}) {
		t.Errorf("kinds are %q, classes %q", kinds, d.Meta.ClassNames)
	}
	_, edges := describe(d)
	forward := slices.DeleteFunc(slices.Clone(edges), func(e string) bool { return strings.Contains(e, " rev_") })
	if want := []string{
		"package:libc-bin built_from source:glibc", "package:libc-bin enhances package:vim", "package:libc-bin suggests virtual:editor",
		"package:libc6 built_from source:glibc", "package:libc6 provides package:zsh",
		"package:vim built_from source:vim", "package:vim conflicts virtual:vi", "package:vim depends package:libc6",
		"package:vim depends package:zsh", "package:vim provides virtual:editor", "package:vim provides virtual:vi",
		"package:vim replaces package:zsh",
		"package:zsh breaks package:libc6", "package:zsh built_from source:zsh", "package:zsh pre_depends package:libc6",
		"package:zsh recommends package:vim", "package:zsh recommends virtual:editor",
		"source:glibc maintained_by maintainer:libc@debian.org", "source:vim maintained_by maintainer:nobody",
		"source:zsh maintained_by maintainer:shells@debian.org",
	}; !slices.Equal(forward, want) || len(edges) != 2*len(want) {
		t.Errorf("%d edges, forward\n%s\nwant\n%s", len(edges), strings.Join(forward, "\n"), strings.Join(want, "\n"))
	}
	for want, o := range map[string]Options{
		"--symmetrise, but":    {Src: src, Relations: true, Symmetrise: true},
		"--edge-features, but": {Src: src, Relations: true, TableOptions: TableOptions{EdgeFeatures: []string{"field"}}},
	} {
		if _, err := load(t, "debian", o); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := load(t, "ogb", Options{Src: files(t, tinyOGB()), Relations: true}); fault.KindOf(err) != fault.Usage {
		t.Errorf("--relations of a dataset of ogb: %v", err)
	}
	bad := filepath.Join(files(t, map[string][]byte{"avail": []byte("Package: a\nBreaks: b, (x)\n")}), "avail")
	_, err := load(t, "debian", Options{Src: bad, Relations: true})
	if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
	mustLoad(t, "debian", Options{Src: bad})
}

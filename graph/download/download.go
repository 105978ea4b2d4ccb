package download

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"siafu/graph"
	"siafu/graph/importers"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/scratch"
)

const op = "download"

// Options are the flags of "siafu download". BaseURL replaces the scheme and host of every URL.
type Options struct {
	Dst           string `arg:"" optional:"" help:"Dataset folder to create. Empty: data/NAME."`
	Cache         string `placeholder:"DIR" help:"Folder of downloaded files. Empty: the user's cache folder."`
	BaseURL       string `name:"base-url" placeholder:"URL" help:"URL of a mirror that replaces the published host."`
	Normalize     bool   `name:"normalize-features" help:"Divide each feature row by its sum."`
	FeatureFormat string `name:"feature-format" default:"float32" enum:"float32,bf16" help:"Number format of dense features in the dataset: float32 or bf16."`
	Force         bool   `help:"Replace an existing dataset folder."`

	Log func(format string, args ...any) `kong:"-"`
}

// Get downloads the named dataset, unless the cache contains it, and writes it to o.Dst.
//
// Fault kinds: Usage for an unknown name, Missing for a file that the server lacks, Data for a
// wrong checksum. IO means a network that fails in several attempts, Config a dataset that no
// importer reads, and Stopped a cancelled ctx. Received data is kept for the next attempt.
func Get(ctx context.Context, name string, o Options) (*graph.WriteReport, error) {
	return get(ctx, name, o, newFetcher())
}

func get(ctx context.Context, name string, o Options, f *fetcher) (*graph.WriteReport, error) {
	d, err := find(name)
	if err != nil {
		return nil, err
	}
	if d.Blocked != "" {
		return nil, fault.New(fault.Config, op, d.Name, "%s", d.Blocked).
			Then("convert %s%s to a format that siafu import reads", d.Base, d.Files[0].Name)
	}
	if o.Log != nil {
		f.log = o.Log
	}
	if o.Dst == "" {
		return nil, fault.New(fault.Usage, op, "", "no destination folder")
	}
	if _, err := os.Lstat(o.Dst); err == nil && !o.Force {
		return nil, fault.New(fault.Usage, op, o.Dst, "exists already").
			Then("choose another folder, or replace this one with --force")
	}
	folder, err := cacheFolder(o.Cache, d.Name)
	if err != nil {
		return nil, err
	}
	for _, file := range d.Files {
		from, err := fileURL(d.Base+file.Name, o.BaseURL)
		if err != nil {
			return nil, err
		}
		if err := f.fetch(ctx, from, filepath.Join(folder, file.Name), file); err != nil {
			return nil, err
		}
	}
	return load(d, folder, o)
}

// cacheFolder creates the cache folder of a dataset and returns its path.
func cacheFolder(cache, name string) (string, error) {
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fault.New(fault.Config, op, "", "%v", err).Then("name a cache folder")
		}
		cache = filepath.Join(user, "siafu")
	}
	folder := filepath.Join(cache, name)
	return folder, durable.MkdirAll(op, folder)
}

// fileURL replaces the scheme and host of raw by the scheme and host of base. It prefixes the
// path with base's path.
func fileURL(raw, base string) (string, error) {
	if base == "" {
		return raw, nil
	}
	b, err := url.Parse(base)
	if err != nil || b.Host == "" || b.Scheme != "http" && b.Scheme != "https" {
		return "", fault.New(fault.Usage, op, base, "not the URL of a mirror").Then("write https://HOST or https://HOST/FOLDER")
	}
	u, err := url.Parse(raw)
	if err != nil {
		panic("download: invalid URL in the manifest")
	}
	return strings.TrimRight(base, "/") + u.EscapedPath(), nil
}

// load imports the files in the cache folder.
func load(d dataset, folder string, o Options) (*graph.WriteReport, error) {
	src := folder
	if d.Unzip != "" {
		unpacked, err := scratch.Make(filepath.Join(folder, "unpacked"))
		if err != nil {
			return nil, fault.System(op, folder, err)
		}
		defer unpacked.Close()
		if err := unzip(filepath.Join(folder, d.Files[0].Name), unpacked.Path); err != nil {
			return nil, err
		}
		src = filepath.Join(unpacked.Path, d.Unzip)
	}
	return importers.Import(d.Format, importers.Options{
		Src:           src,
		Dst:           o.Dst,
		Name:          d.Name,
		Normalize:     o.Normalize,
		FeatureFormat: o.FeatureFormat,
		Symmetrise:    d.Symmetrise,
		Force:         o.Force,
		Log:           o.Log,
	})
}

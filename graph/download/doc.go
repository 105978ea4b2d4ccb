// Package download fetches public datasets by name and imports them.
//
// manifest.toml lists the datasets, their URLs and their checksums. Files are stored in a cache
// folder, one folder per dataset. An interrupted download continues where it stopped, also in the
// next run. A file is used only after its checksum is verified; a file with a wrong checksum is
// removed. If no checksum is published, the first download is trusted, the log reports it, and
// its SHA-256 is stored in NAME.sha256 next to the file for later downloads.
//
// Without a network, copy the files into the cache folder.
package download

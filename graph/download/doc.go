// Package download fetches public datasets by name and imports them.
//
// manifest.toml says which there are, where they lie and what their checksums
// are. Files are kept in a cache folder, one folder a dataset; an interrupted
// download goes on where it stopped, in the next run too. A file counts only
// once its checksum is right; a wrong one is removed. Where nobody publishes a
// checksum the first download is trusted, which the log says, and its SHA-256
// is kept in NAME.sha256 beside the file for all later ones.
//
// Without a network, files put into the cache folder by hand do as well.
package download

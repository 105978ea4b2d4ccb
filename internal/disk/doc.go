// Package disk reads and writes files without the page cache, and measures the rates of disks. Where a
// file system has no direct input and output, files are read and written through the page cache, after
// their pages have been removed from it; File.Direct reports which. The main type is File.
package disk

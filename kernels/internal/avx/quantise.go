package avx

// CodeSlack is the number of bytes after a row's codes that Codes may overwrite and
// Values may read: the rest of a vector.
const CodeSlack = 16

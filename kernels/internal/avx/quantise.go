package avx

// CodeSlack is how many bytes after a row's codes Codes may overwrite and
// Values may read: the rest of a vector.
const CodeSlack = 16

package catalog

// Nearest returns the word of a list with the smallest edit distance to s.
func Nearest(s string, list []string) string {
	best, least := "", 1<<30
	for _, w := range list {
		if d := Distance(s, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// Distance returns the Levenshtein distance.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

package ranks

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

func product(a, b [][]float64) [][]float64 {
	m := make([][]float64, len(a))
	for i := range a {
		m[i] = make([]float64, len(b[0]))
		for k, x := range a[i] {
			for j, y := range b[k] {
				m[i][j] += x * y
			}
		}
	}
	return m
}

// affine adds a bias and applies ReLU.
func affine(m [][]float64, bias []float64, relu bool) [][]float64 {
	for v := range m {
		for j := range m[v] {
			m[v][j] += bias[j]
			if relu {
				m[v][j] = max(m[v][j], 0)
			}
		}
	}
	return m
}

func plus(a, b [][]float64) [][]float64 {
	for v := range a {
		for j := range a[v] {
			a[v][j] += b[v][j]
		}
	}
	return a
}

// blend returns x·a + y·b.
func blend(x float64, a [][]float64, y float64, b [][]float64) [][]float64 {
	sum := make([][]float64, len(a))
	for v := range a {
		sum[v] = make([]float64, len(a[v]))
		for j := range a[v] {
			sum[v][j] = x*a[v][j] + y*b[v][j]
		}
	}
	return sum
}

// activated applies f to each element.
func activated(m [][]float64, f func(float64) float64) [][]float64 {
	out := blend(1, m, 0, m)
	for _, row := range out {
		for j, x := range row {
			row[j] = f(x)
		}
	}
	return out
}

package elementary

// Golden is the increment of SplitMix64's counter: 2⁶⁴ divided by the golden ratio, odd.
const Golden = 0x9e3779b97f4a7c15

// Mix is the output function of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014, section 3). It is a bijection, and each output bit depends on all input bits.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

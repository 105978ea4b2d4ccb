package avx

// SGD has the constants of a step of SGD:
//
//	b = Momentum·b + (g + Decay·w);  w -= LR·b    (without Momentum: w -= LR·(g + Decay·w))
//
// The assembly depends on the order of the fields, also of Adam's.
type SGD struct{ LR, Momentum, Decay float32 }

// Adam has the constants of one step of Adam or AdamW:
//
//	w = Shrink·w;  g += L2·w
//	m = B1·m + C1·g;  v = B2·v + C2·g·g
//	w -= Size·m / (Root·sqrt(v) + Eps)
type Adam struct{ Shrink, L2, B1, C1, B2, C2, Size, Root, Eps float32 }

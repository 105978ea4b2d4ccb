package avx

// Draw has the inputs of Philox4x32-10 except the first two words of the counter, which are the id
// and the block of four columns. The assembly depends on the order of the fields.
type Draw struct {
	Keys  [10][2]uint32 // of the rounds
	First uint32        // hi(M1·c2) ^ Keys[0][0], c2 being the third word of the counter
	// Second is lo(M1·c2) ^ Keys[1][0].
	Second uint32
	Third  uint32  // c3 ^ Keys[0][1], c3 being the fourth word of the counter
	Last   uint32  // Dropout keeps an element whose word is at most this,
	Scale  float32 // times Scale
}

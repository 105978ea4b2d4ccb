// Package pickle reads Python's pickles without executing them.
//
// A pickle is a program for a stack machine that builds Python objects (CPython's pickletools.py
// describes the instructions). Decode runs the instructions that describe data, of protocols 2 to
// 5; it knows no classes and calls nothing: a call or an instance becomes an Object with the name
// and the arguments of the call. Memory is proportional to the size of the pickle.
//
// Design note: github.com/nlpodyssey/gopickle reads these files too, but panics on damaged ones
// (an unknown instruction 0xff, a negative length) and allocates what a length claims.
package pickle

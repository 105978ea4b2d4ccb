// Package tune makes choices during training: the codec of ghost rows for --codec auto
// (Chooser), and the epochs without ghost rows for --refresh auto (Phases). It measures
// nothing and sends nothing. Both are state machines that get the seconds and losses of
// epochs and return the next choice. Ranks with the same inputs make the same choices.
package tune

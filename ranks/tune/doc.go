// Package tune chooses the codec that rows of ghosts travel through, for
// --codec auto. It measures nothing and sends nothing: a Chooser is a state
// machine that is told the seconds of epochs and says what comes next. Ranks
// that tell their Choosers the same choose the same.
package tune

// Package tune chooses while a run trains: the codec that rows of ghosts travel
// through, for --codec auto (Chooser), and which epochs train without ghosts, for
// --refresh auto (Phases). It measures nothing and sends nothing: both are state
// machines that are told the seconds and losses of epochs and say what comes next.
// Ranks that tell them the same choose the same.
package tune

//! Foreign text made inert, one function per sink.

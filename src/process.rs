//! Runs the few programs that an operator names: a backend's, a key command, the project's tests.

//! The ways to ask Switchboard, so that one story can be played through each.

use std::time::Duration;

use switchboard::approval::Answer;

use crate::harness::{Home, World, pass};

/// One running gateway behind one of its surfaces.
pub trait Face: Sized {
    /// Starts with a user's configuration, in a new home.
    fn open(config: &str) -> impl Future<Output = Self>;

    /// What a model gets for the arguments of one `mcp` call.
    fn ask(&mut self, arguments: &str) -> impl Future<Output = String>;

    /// What the user will say when asked.
    fn will_answer(&mut self, answers: &[Answer]);

    /// What the user was asked so far: the tool and its arguments.
    fn asked(&self) -> Vec<String>;

    /// Lets time go by; a face with a real clock cannot, and no story asks it to.
    fn advance(&mut self, time: Duration) -> impl Future<Output = ()>;

    /// Ends, and starts again in the same home.
    fn restart(self) -> impl Future<Output = Self>;
}

/// The engine as a Rust program uses it.
pub struct Library {
    config: String,
    world: World,
}

impl Library {
    fn start(config: &str, home: Home) -> Self {
        let world = World::with(config).home(home).start();
        Self { config: config.to_owned(), world }
    }
}

impl Face for Library {
    async fn open(config: &str) -> Self {
        Self::start(config, Home::new())
    }

    async fn ask(&mut self, arguments: &str) -> String {
        self.world.ask(arguments).await
    }

    fn will_answer(&mut self, answers: &[Answer]) {
        self.world.host.will_answer(answers.iter().copied());
    }

    fn asked(&self) -> Vec<String> {
        self.world.host.asked()
    }

    async fn advance(&mut self, time: Duration) {
        pass(time).await;
    }

    async fn restart(self) -> Self {
        let home = self.world.shut_down().await;
        Self::start(&self.config, home)
    }
}

//! Memory, descriptors and children of a gateway and its reaper, and their trend.

use std::time::Duration;

use crate::grove::{Grove, Role};
use crate::processes::{children, memory, open_files};

/// The measurements of a gateway and its reaper at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Vitals {
    pub at: Duration,
    /// Resident memory in bytes.
    pub gateway_memory: u64,
    pub reaper_memory: u64,
    pub gateway_files: usize,
    pub reaper_files: usize,
    /// The children of the reaper, zombies included.
    pub children: usize,
}

impl Vitals {
    pub(crate) fn of(grove: &Grove, gateway: u32, at: Duration) -> Vitals {
        // A keeper that has just started still has the name of the reaper.
        let mut reapers = grove.having(Role::Reaper);
        let of_gateway = children(gateway);
        reapers.retain(|reaper| of_gateway.contains(reaper));
        let [reaper] = *reapers else { panic!("one reaper, not {reapers:?}") };
        Vitals {
            at,
            gateway_memory: memory(gateway),
            reaper_memory: memory(reaper),
            gateway_files: open_files(gateway),
            reaper_files: open_files(reaper),
            children: children(reaper).len(),
        }
    }
}

/// The trend of a figure, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The values at both ends of the line.
    pub from: f64,
    pub to: f64,
    pub per_minute: f64,
}

impl Trend {
    /// The trend of `figure` over the measurements since `since`.
    pub fn of(vitals: &[Vitals], since: Duration, figure: impl Fn(&Vitals) -> f64) -> Trend {
        let points: Vec<(f64, f64)> = vitals
            .iter()
            .filter(|vitals| vitals.at >= since)
            .map(|vitals| (vitals.at.as_secs_f64() / 60.0, figure(vitals)))
            .collect();
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (middle, level) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|(at, _)| (at - middle).powi(2)).sum();
        let common: f64 = points.iter().map(|(at, is)| (at - middle) * (is - level)).sum();
        let per_minute = if spread > 0.0 { common / spread } else { 0.0 };
        let on_line = |point: Option<&(f64, f64)>| {
            point.map_or(0.0, |(at, _)| level + (at - middle) * per_minute)
        };
        Trend { from: on_line(points.first()), to: on_line(points.last()), per_minute }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(figures: &[u64], since: u64, from: f64, to: f64, per_minute: f64) {
        let vitals: Vec<Vitals> = figures
            .iter()
            .enumerate()
            .map(|(minute, figure)| Vitals {
                at: Duration::from_secs(60 * minute as u64),
                gateway_memory: *figure,
                reaper_memory: 0,
                gateway_files: 0,
                reaper_files: 0,
                children: 0,
            })
            .collect();
        let since = Duration::from_secs(60 * since);
        let trend = Trend::of(&vitals, since, |vitals| vitals.gateway_memory as f64);
        assert_eq!(trend, Trend { from, to, per_minute });
    }

    #[test]
    fn soak_trend_is_linear_fit_after_the_warm_up() {
        check(&[], 0, 0.0, 0.0, 0.0);
        check(&[7], 0, 7.0, 7.0, 0.0);
        check(&[5, 5, 5], 0, 5.0, 5.0, 0.0);
        check(&[1, 3, 5, 7], 0, 1.0, 7.0, 2.0);
        check(&[100, 50, 2, 3, 4], 2, 2.0, 4.0, 1.0);
        check(&[0, 3, 0], 0, 1.0, 1.0, 0.0);
    }
}

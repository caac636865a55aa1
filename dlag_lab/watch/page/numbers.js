// Numbers as people read them.
export const count = n => Math.round(n).toLocaleString("en-US");
export const share = x => `${(100 * x).toFixed(x > 0.0995 || x === 0 ? 0 : 1)} %`;
export const small = x => x === null || x === undefined ? "–" : x === 0 ? "0" : x.toExponential(2);
export const short = n => n >= 1e6 ? `${+(n / 1e6).toPrecision(3)}M` : n >= 1e3 ? `${+(n / 1e3).toPrecision(3)}k` : `${n}`;
export const bytes = n => n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toPrecision(3)} kB` : n < 1e9 ? `${(n / 1e6).toPrecision(3)} MB` : `${(n / 1e9).toPrecision(3)} GB`;
export const seconds = s => s < 0.0995 ? `${(1000 * s).toFixed(0)} ms` : s < 10 ? `${s.toFixed(2)} s` : `${s.toFixed(0)} s`;
export const clock = at => new Date(1000 * at).toLocaleTimeString("en-GB");

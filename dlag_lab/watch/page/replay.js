// Playing a recorded run: pictures are fetched a page at a time, a little ahead of what is shown.
const PAGE = 100; // pictures
const PAGES = 40; // kept
const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; // rounds a second
const LASTS = 30; // seconds that the whole run takes, unless somebody chooses
const FASTEST = 20; // rounds a second, at which single deltas can still be seen
const $ = id => document.getElementById(id);

export class Player {
  constructor(rounds, show) {
    this.rounds = rounds;
    this.show = show;
    this.pages = new Map();
    this.at = 0;
    this.playing = false;
    $("controls").hidden = false;
    $("scrub").max = rounds;
    const chosen = SPEEDS.find(speed => speed === FASTEST || rounds / speed <= LASTS);
    $("speed").replaceChildren(...SPEEDS.map(speed => new Option(speed, speed, false, speed === chosen)));
    $("play").onclick = () => this.play(!this.playing);
    $("scrub").oninput = () => this.go(Number($("scrub").value));
    document.addEventListener("keydown", event => {
      if (event.key === " " && event.target === document.body) this.play(!this.playing);
    });
    this.go(0).then(() => this.at === 0 && this.play(true));
    let before = performance.now();
    const tick = now => {
      if (this.playing) this.#forward((now - before) / 1000);
      before = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  get speed() {
    return Number($("speed").value);
  }

  play(on) {
    if (on && this.at >= this.rounds) this.at = 0;
    this.playing = on;
    $("play").textContent = on ? "❚❚" : "▶";
  }

  async go(k) {
    this.at = k;
    const picture = await this.#picture(k);
    const before = k > 0 ? await this.#picture(k - 1) : null;
    if (this.at === k) this.#present(picture, before);
  }

  #forward(elapsed) {
    const next = Math.min(this.rounds, this.at + this.speed * elapsed);
    const [from, to] = [Math.floor(this.at), Math.floor(next)];
    if (to > from) {
      const [picture, before] = [this.#cached(to), this.#cached(from)];
      if (!picture || !before) return; // until it is here
      this.#present(picture, before);
    }
    this.at = next;
    this.#picture(Math.min(this.rounds, to + PAGE / 2));
    if (next >= this.rounds) this.play(false);
  }

  #present(picture, before) {
    $("scrub").value = picture.k;
    $("where").textContent = `${picture.k} of ${this.rounds}`;
    this.show(picture, before);
  }

  #cached(k) {
    const page = this.pages.get(Math.floor(k / PAGE));
    return page instanceof Array ? page[k % PAGE] : undefined;
  }

  async #picture(k) {
    const number = Math.floor(k / PAGE);
    if (!this.pages.has(number)) {
      const asked = fetch(`/pictures?first=${number * PAGE}&count=${PAGE}`).then(answer => answer.json());
      this.pages.set(number, asked);
      for (const old of [...this.pages.keys()].slice(0, -PAGES)) this.pages.delete(old);
      asked.then(pictures => this.pages.set(number, pictures), () => this.pages.delete(number));
    }
    return (await this.pages.get(number))[k % PAGE];
  }
}

// The site's search when it is read from a file: browsers start no worker from file://, so a hidden
// frame stands in for one. Its two functions are those of a worker, and messages wait for its script.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...scripts) =>
        scripts.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
      this.ready = this.load(script);
    }

    load(script) {
      return new Promise((done, failed) => {
        const element = this.inside.document.createElement("script");
        Object.assign(element, { src: script, onload: done, onerror: failed });
        this.inside.document.body.append(element);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}

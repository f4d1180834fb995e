// A page that is opened as a file may not start a worker, and the search of the site is one.
// Here its script runs in a hidden frame instead. The theme knows this by the name IFrameWorker.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const page = this.frame.contentDocument;
      page.open(); // else Firefox replaces the page, and the script with it
      page.write("<!doctype html><body>");
      page.close();
      this.frame.contentWindow.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = page.createElement("script");
      this.started = new Promise((done) => script.addEventListener("load", done));
      script.addEventListener("error", () => this.dispatchEvent(new ErrorEvent("error")));
      script.src = url;
      page.body.append(script);
    }

    postMessage(data) {
      const { contentWindow } = this.frame;
      this.started.then(() => contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

// A request that never reached the server is asked again: a browser drops a connection now and then, a server is
// started anew, and the page would otherwise stay at what it showed before. An answer, good or bad, is never asked twice.
(() => {
  const ask = window.fetch.bind(window);
  const PAUSES = [100, 400, 1600]; // milliseconds before the second, third and fourth attempt

  window.fetch = async (...request) => {
    for (const pause of PAUSES) {
      try {
        return await ask(...request);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // a TypeError says that no answer came; an abort is meant
        await new Promise((wake) => setTimeout(wake, pause));
      }
    }
    return ask(...request);
  };
})();

//! A chat with one function as a tool. It needs no installed jaato.

use std::io::{BufRead as _, Write as _};

use jaato_library::types::Event;
use jaato_library::{Jaato, Result, Tool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let schema =
        serde_json::json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let count = Tool::new("count_letters", "Counts letters.", schema, |input, _cx| async move {
        Ok::<_, String>(input["text"].as_str().unwrap_or_default().chars().count())
    });
    let [model, key, url] =
        ["MODEL", "API_KEY", "BASE_URL"].map(|name| std::env::var(name).unwrap_or_default());
    let jaato = Jaato::builder().plugin(provider_openai::__jaato::MODULE).tool(count.allowed());
    let jaato = jaato.key("openai", key).base_url("openai", url).start().await?;
    let session = jaato.session().model(&format!("openai/{model}")).open()?;
    for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
        let mut turn = session.send(line);
        while let Some(event) = turn.next().await {
            if let Event::TextDelta { text, .. } = event {
                print!("{text}");
                let _ = std::io::stdout().flush();
            }
        }
        println!("\n[{:?}]", turn.await?.outcome);
    }
    Ok(())
}

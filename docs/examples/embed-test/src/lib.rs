//! A function that asks a model, and its test with a scripted provider.

use jaato_library::{Jaato, Result};

/// Returns a title for a text, in at most `words_max` words.
///
/// # Errors
/// If the model cannot be asked.
pub async fn ask_title(jaato: &Jaato, text: &str, words_max: usize) -> Result<String> {
    let session = jaato.session().tools([]).system("Answer with a title alone.").open()?;
    let answer = session.send(format!("A title for this text:\n\n{text}")).await?.text;
    session.close().await;
    Ok(answer.split_whitespace().take(words_max).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction};

    use super::*;

    #[tokio::test]
    async fn title_has_at_most_the_allowed_words() -> Result<()> {
        let model = Arc::new(ScriptedProvider::default());
        model.add_answer([ScriptedProviderAction::text("The Moon and\nthe Tides")]);
        let jaato = Jaato::builder().shared_provider("my", Arc::clone(&model) as _).start().await?;
        assert_eq!(ask_title(&jaato, "Twice a day …", 4).await?, "The Moon and the");
        let request = &model.requests()[0];
        assert!(request.system.contains("Answer with a title alone."));
        assert!(request.messages[0].text().ends_with("Twice a day …"));
        Ok(())
    }
}
